import type { Page } from 'playwright-core';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';

/**
 * A page as `every-page.long.test.ts` looks at it: light and dark, on a wide screen and on a phone.
 */
export interface JudgedPage {
  /** The name of its route (GET); or of the form (POST) whose answer it is. */
  route: string;
  /** What its pictures are called. */
  picture: string;
  /** Arranges what it shows, once, and says where it is. `ada` owns the organization. */
  path: (t: ConsoleInstallation, ada: Enrolled) => string | Promise<string>;
  /** What to do there before looking: open a menu, send the form. */
  steps?: (page: Page, t: ConsoleInstallation, ada: Enrolled) => Promise<void>;
  /** Whether it is looked at without a session. */
  signedOut?: boolean;
}
