// Match names against patterns and count the callbacks.
import { createRequire } from 'node:module';

export function prepare(repository) {
  return createRequire(`${repository}/`)(`${repository}/index.js`);
}

export function answer(picomatch, given) {
  const calls = { onMatch: 0, onIgnore: 0, onResult: 0 };
  const counters = Object.fromEntries(Object.keys(calls).map((name) => [name, () => { calls[name] += 1; }]));
  const isMatch = picomatch(given.pattern, given.count ? { ...given.options, ...counters } : given.options);
  const matched = given.names.filter((name) => isMatch(name));
  return given.count ? { matched, calls } : { matched };
}
