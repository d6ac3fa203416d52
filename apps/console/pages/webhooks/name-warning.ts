import dns from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { notice } from '../../components/notice.ts';

/** How long a page waits for DNS; without a response it says nothing. */
const patienceMs = 1_500;

/**
 * Warns that the host name of a URL has no address in DNS now, a typing error or a name that is set
 * up later. It is no error: events are retried until the name resolves. Also warns of plain http to
 * a name, which is judged by its addresses at each attempt.
 */
export async function nameWarning(url: string): Promise<Html> {
  const parsed = URL.parse(url);
  const hostname = parsed?.hostname.replace(/^\[|\]$/g, '') ?? '';
  // Names without a dot are the installation's own, and are not in DNS everywhere.
  if (isIP(hostname) !== 0 || !hostname.includes('.')) return nothing;
  const unknown = html`<bdi>${hostname}</bdi> has no address in DNS now. Check the spelling of the URL. Events are
    retried until the name resolves.`;
  const warnings = [(await isUnknown(hostname)) && unknown, parsed?.protocol === 'http:' && plainHttp];
  const shown = warnings.filter((warning) => warning !== false);
  return shown.length === 0 ? nothing : html`${shown.map((warning) => notice('warning', warning))}`;
}

const plainHttp =
  'Nothing is sent over http unless the name resolves to an address that this installation allows. Use https instead.';

async function isUnknown(hostname: string): Promise<boolean> {
  const codes = await Promise.race([
    Promise.all([findErrorCode(dns.resolve4(hostname)), findErrorCode(dns.resolve6(hostname))]),
    setTimeout(patienceMs, [] as (string | null)[], { ref: false }),
  ]);
  return codes.includes('ENOTFOUND') || (codes.length > 0 && codes.every((code) => code === 'ENODATA'));
}

/** Returns the code of a failed query; null when it has addresses. */
const findErrorCode = (query: Promise<string[]>): Promise<string | null> =>
  query.then(
    () => null,
    ({ code }: NodeJS.ErrnoException) => code ?? 'unknown',
  );
