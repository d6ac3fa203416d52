/** `npm run test:long`: what takes minutes by its size and so is apart from `npm test`, on the same servers and with the same settings. */
import { defineConfig } from 'vitest/config';
import everyChange from './vitest.config.ts';

export default defineConfig({
  test: { ...everyChange.test, include: ['test/**/*.long.test.ts'], exclude: [] },
});
