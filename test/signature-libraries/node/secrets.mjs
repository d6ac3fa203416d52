/**
 * Reads WEBHOOK_SECRET: the secret of the only webhook, or `<webhook-endpoint>=whsec_…` for each of several, with
 * spaces between. An endpoint may have two, while one is being rotated.
 *
 * @param {string} text
 * @returns {(endpoint?: string) => string[]} the secrets of an endpoint
 * @throws {Error} a sentence that contains no secret
 */
export function readSecrets(text) {
  if (/[^\t\n\r -~]/.test(text))
    throw new Error('WEBHOOK_SECRET has a byte order mark or another invisible character: save it without one.');
  if (/["'`]/.test(text)) throw new Error('WEBHOOK_SECRET has quotes: remove them.');
  const byEndpoint = new Map();
  for (const entry of text.split(/\s+/).filter((each) => each !== '')) {
    const [, endpoint = '', secret] = /^(?:([^=]+)=)?(whsec_[A-Za-z0-9+/]{32})$/.exec(entry) ?? [];
    if (!secret)
      throw new Error('WEBHOOK_SECRET contains what is not a secret: copy all of it, from whsec_ to its end.');
    byEndpoint.set(endpoint, [...(byEndpoint.get(endpoint) ?? []), secret]);
  }
  if (byEndpoint.size === 0)
    throw new Error('WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created.');
  return (endpoint) => byEndpoint.get(endpoint) ?? byEndpoint.get('') ?? [];
}
