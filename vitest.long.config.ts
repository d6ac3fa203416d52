/** `npm run test:long`: what takes minutes by its size and so is apart from `npm test`, on the same servers and with the same settings; and the console's journeys on a phone, which that makes on a wide screen. */
import { defineConfig } from 'vitest/config';
import everyChange from './vitest.config.ts';

const journeys = 'test/console/{activity,enrolment,keys,members,webhooks}.browser.test.ts';

export default defineConfig({
  test: {
    ...everyChange.test,
    include: ['test/**/*.long.test.ts', journeys],
    exclude: [],
    provide: { journeyScreens: ['phone'] },
  },
});
