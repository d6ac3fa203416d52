import { type Html, html } from '../web/html.ts';
import { notice } from './notice.ts';

/**
 * What a member reads whose sign-in an organization has not confirmed. It names none: this sign-in
 * may not be the member's.
 */
export const unconfirmedSentence = 'You are a member of this organization, but it has not confirmed your sign-in.';

/** What they can do about it. */
export const unconfirmedNext =
  'Ask the person who manages its members for a link, and open it while you are signed in. Support can confirm it too.';

/**
 * Says so on a page that lists the organizations that are open; `count` is how many are not, at
 * least 1.
 */
export const unconfirmedNotice = (count: number): Html => {
  const which = count === 1 ? 'One organization is' : `${count} organizations are`;
  const why = 'because your sign-in is not confirmed there.';
  return notice('info', html`${which} not listed, ${why} ${unconfirmedNext}`);
};
