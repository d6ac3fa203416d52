import { isIP, isIPv4 } from 'node:net';
import { type AllowList, judgeAddress } from './addresses.ts';
import type { RefusalCause } from './refusals.ts';

/**
 * Where a post goes. `address` is the host when that is an address already (or `localhost`), null
 * when the name has to be looked up.
 */
export interface Target {
  ok: true;
  url: URL;
  /** Without brackets. */
  hostname: string;
  port: number;
  address: string | null;
}

/**
 * Characters of a webhook's URL, both as given and as sent (percent-encoded).
 */
const urlMaxCharacters = 2_000;

/**
 * Whether a webhook may have this URL, by its text alone: nothing is looked up. Used when a webhook
 * is registered and again at each attempt.
 *
 * Decisions (2026-11-20):
 * - The WHATWG parser's reading is the one that is judged, and the one that is connected to; there
 *   is no second parser to disagree with it.
 * - Spellings that only serve to disguise (octal, hex or short IPv4, percent-encoded or full-width
 *   hosts, a trailing dot, userinfo, backslashes, controls) are refused even where they lead to a
 *   public address: people read these URLs in the console.
 * - Any port but 0. Addresses are what keeps the service's network out of reach, receivers do listen on
 *   8443 and the like, and a server that speaks another protocol than TLS is sent nothing of an
 *   event.
 * - A fragment is refused: it would never be sent.
 * - Names that only exist inside a network (`localhost`, one label, `.local`, `.internal`, …) are
 *   refused by their text, unless the operator allows addresses; then the addresses decide.
 *   `localhost` is never looked up: it is 127.0.0.1 (RFC 6761).
 * - Plain http is for allowed addresses only. For a name that shows when it has been looked up, so
 *   with an allow list the text may pass here.
 */
export function judgeUrl(text: string, allowed: AllowList): Target | { ok: false; cause: RefusalCause } {
  const cause = judgeText(text);
  if (cause !== null) return { ok: false, cause };
  const url = URL.parse(text);
  if (url === null) return { ok: false, cause: 'url_form' };
  if (url.href.length > urlMaxCharacters) return { ok: false, cause: 'url_too_long' };
  if (url.port === '0') return { ok: false, cause: 'url_port' };

  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const literal = isIP(hostname) !== 0;
  const address = literal ? hostname : isLocalhost(hostname) ? '127.0.0.1' : null;
  const refused = address === null ? judgeName(hostname, allowed) : judgeLiteral(address, literal, url, allowed);
  if (refused !== null) return { ok: false, cause: refused };
  if (isDisguised(text, url)) return { ok: false, cause: 'url_host_form' };
  if (url.protocol === 'http:' && address === null && isEmpty(allowed)) return { ok: false, cause: 'url_scheme' };
  return { ok: true, url, hostname, port, address };
}

/** What the text shows before it is parsed; the parser would drop or repair these. */
function judgeText(text: string): RefusalCause | null {
  if (text.length > urlMaxCharacters) return 'url_too_long';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the parser silently drops tabs and newlines
  if (/[\u0000-\u0020\u007f-\u00a0\\]/.test(text) || !text.isWellFormed()) return 'url_characters';
  if (/^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(text)) return 'url_scheme';
  const authority = authorityOf(text);
  if (authority === '') return 'url_form'; // no scheme, https:host, https:///host
  if (authority.includes('@')) return 'url_credentials';
  return text.includes('#') ? 'url_fragment' : null;
}

function judgeLiteral(address: string, literal: boolean, url: URL, allowed: AllowList): RefusalCause | null {
  const judged = judgeAddress(address, allowed);
  if (!judged.ok) return literal ? judged.cause : 'url_host_local';
  return url.protocol === 'http:' && !judged.allowed ? 'url_scheme' : null;
}

const localSuffixes =
  /(^|\.)(local|localdomain|localhost|internal|intranet|private|corp|home|lan|arpa|test|example|invalid|onion|alt)$/;

function judgeName(hostname: string, allowed: AllowList): RefusalCause | null {
  const name = hostname.replace(/\.$/, '');
  const inside = !name.includes('.') || localSuffixes.test(name);
  if (inside && isEmpty(allowed)) return 'url_host_local';
  if (hostname.length > 253) return 'url_host_form';
  // The parser lets empty labels and characters through that no host name has; a trailing dot fails
  // as an empty label.
  const wellFormed = hostname.split('.').every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label));
  return wellFormed ? null : 'url_host_form';
}

function isLocalhost(hostname: string): boolean {
  return /(^|\.)localhost\.?$/.test(hostname);
}

/**
 * Whether the host reads otherwise than what it means, apart from case, IDN and the many spellings
 * of IPv6.
 */
function isDisguised(text: string, url: URL): boolean {
  const host = authorityOf(text).replace(/:\d*$/, '');
  if (host.includes('%') || host.endsWith('.')) return true;
  if (isIPv4(url.hostname)) return host !== url.hostname;
  const isAscii = Buffer.byteLength(host) === host.length;
  return !isAscii && !url.hostname.includes('xn--');
}

function authorityOf(text: string): string {
  return /^https?:\/\/([^/?#]*)/i.exec(text)?.[1] ?? '';
}

function isEmpty(allowed: AllowList): boolean {
  return allowed.rules.length === 0;
}
