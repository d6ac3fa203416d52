import { type Html, html } from '../web/html.ts';
import { notice } from './notice.ts';

/** What a member reads whose sign-in an organization has not confirmed. It names none: this sign-in may not be the member's. */
export const unconfirmedSentence =
  'You are a member of this organization, but it has not confirmed that you sign in with this account.';

/** What they can do about it. */
export const unconfirmedNext =
  'Ask the person who manages members there for a link, and open it while you are signed in. The operator of this service can confirm your sign-in too.';

/** The same for `count` organizations, on a page that lists those that are open. */
export const unconfirmedNotice = (count: number): Html =>
  notice(
    'info',
    html`${count === 1 ? 'One organization' : `${count} organizations`} with you as a member ${count === 1 ? 'has' : 'have'} not confirmed that you sign in with this account, so ${count === 1 ? 'it is' : 'they are'} not listed. ${unconfirmedNext}`,
  );
