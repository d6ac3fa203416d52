/**
 * Returns the address that a person opens to use a one-time link,
 * `https://console.example.org/enrol#<token>`. The token is the fragment, which browsers send to no
 * server: it reaches no log of a proxy or server, and no `Referer`. The page there sends it as a
 * form.
 */
export const enrolmentLink = (origin: string, token: string): string => `${origin}/enrol#${token}`;

/** Finds the token in a link or in what follows its `#`, as a person pastes it; else null. */
export const findLinkToken = (text: string): string | null => /(?:^|#)([A-Za-z0-9_-]{43})$/.exec(text)?.[1] ?? null;
