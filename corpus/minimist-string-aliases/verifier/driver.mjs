// Parse argument lists with the package.
import { createRequire } from 'node:module';

export function prepare(repository) {
  return createRequire(`${repository}/`)(`${repository}/index.js`);
}

export function answer(parse, given) {
  return parse(given.args, given.options);
}
