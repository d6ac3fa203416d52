import { type Html, html } from '#runtime/pages/html.ts';
import { notice } from './notice.ts';

/**
 * For a member whose sign-in an organization has not confirmed. It names no organization, because
 * the sign-in may be another person's.
 */
export const unconfirmedSentence = 'You are a member of this organization, but it has not confirmed your sign-in.';

/** What they can do about it. */
export const unconfirmedNext =
  'Ask the person who manages its members for a link, and open it while you are signed in. Support can confirm it too.';

/** For a member whose organization requires a sign-in with its provider. */
export const closedSentence = 'This organization accepts only sessions that began at its sign-in provider.';

export const closedNext = html`<a href="/sign-in/organization">Sign in with your organization</a>. If your account there
  is not linked yet, link it under <a href="/account">Your account</a> first.`;

/** Renders the notice that `count` organizations, at least one, are not listed for that reason. */
export const closedNotice = (count: number): Html => {
  const which = count === 1 ? 'One organization is' : `${count} organizations are`;
  return notice('info', html`${which} not listed, because a sign-in with its provider is required. ${closedNext}`);
};

/** Renders the notice that `count` organizations, at least one, are not listed. */
export const unconfirmedNotice = (count: number): Html => {
  const which = count === 1 ? 'One organization is' : `${count} organizations are`;
  const why = 'because your sign-in is not confirmed there.';
  return notice('info', html`${which} not listed, ${why} ${unconfirmedNext}`);
};
