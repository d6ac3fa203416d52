import type { Page } from 'playwright-core';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';

/**
 * A page that `every-page.system.test.ts` judges: light and dark, on a wide screen and at 320 px.
 */
export interface JudgedPage {
  /** The name of its route (GET); or of the form (POST) whose response it is. */
  route: string;
  /** The name of its pictures. */
  picture: string;
  /** Creates the data that it shows, once, and returns its URL. `ada` owns the organization. */
  path: (t: ConsoleInstallation, ada: Enrolled) => string | Promise<string>;
  /** Actions before it is judged: open a menu, send the form. */
  steps?: (page: Page, t: ConsoleInstallation, ada: Enrolled) => Promise<void>;
  /** Whether it is opened without a session. */
  signedOut?: boolean;
}
