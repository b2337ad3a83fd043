// Run the patched code under its hidden driver: inputs on standard input, one answer a line. Node 18+, no dependencies.
//
// Usage: node subject.mjs REPOSITORY DRIVER.mjs. The driver exports `prepare(repository)`, which loads the package and
// returns it, and `answer(subject, given)`, which returns a JSON value for one input or throws; both may be async.
// Runs as the unprivileged user; all that it prints is only a claim, because the judge alone knows the right answers.

import { readFileSync, writeSync, openSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [repository, driverPath] = process.argv.slice(2);
const lines = readFileSync(0, 'utf8').split('\n').filter((line) => line !== '');

function write(answer) {
  let rest = Buffer.from(`${JSON.stringify(answer)}\n`);
  while (rest.length > 0) rest = rest.subarray(writeSync(1, rest));
}

// Packages may print; their text must not mix with the answers.
const sink = openSync('/dev/null', 'w');
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (text) => writeSync(sink, text) > 0;
}

const driver = await import(pathToFileURL(driverPath).href);
const subject = await driver.prepare(repository);
for (const line of lines) {
  const given = JSON.parse(line);
  try {
    const value = await driver.answer(subject, given.input);
    if (value === undefined) throw new TypeError('no value');
    write({ case: given.case, value });
  } catch (error) {
    write({ case: given.case, raised: String(error?.name ?? 'unknown') });
  }
}
