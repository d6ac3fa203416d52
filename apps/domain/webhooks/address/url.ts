import { isIP, isIPv4 } from 'node:net';
import { type AllowList, checkAddress } from './addresses.ts';
import type { UrlProblem } from './url-problems.ts';

/** The target of a post. `address`: the host if it is one or `localhost`; null: to be resolved. */
export interface Target {
  ok: true;
  url: URL;
  /** Without brackets. */
  hostname: string;
  port: number;
  address: string | null;
}

/** The most characters of a webhook's URL, both as given and as sent (percent-encoded). */
const urlMaxCharacters = 2_000;

/**
 * Checks whether a webhook may have this URL, by its text only: nothing is resolved. Used when a
 * webhook is registered and again at each attempt.
 *
 * - The URL is checked and used as the WHATWG parser reads it; no second parser can disagree.
 * - Spellings that disguise an address (octal, hex or short IPv4, percent-encoded or full-width
 *   hosts, a trailing dot, userinfo, backslashes, control characters) are rejected even for a
 * public   address, because people read these URLs in the console.
 * - Any port but 0 is allowed. Addresses protect the service's network, receivers do listen on
 *   ports such as 8443, and a server that does not speak TLS gets nothing of an event.
 * - A fragment is rejected, because it would never be sent.
 * - Names that only exist inside a network (`localhost`, one label, `.local`, `.internal`, …) are
 *   rejected by their text, unless the operator allows addresses; then the addresses decide.
 *   `localhost` is never resolved: it is 127.0.0.1 (RFC 6761).
 * - Plain http is for allowed addresses only. The address of a name is known after it is resolved,
 *   so with an allow list the text may pass here.
 */
export function checkUrl(text: string, allowed: AllowList): Target | { ok: false; cause: UrlProblem } {
  const cause = checkText(text);
  if (cause !== null) return { ok: false, cause };
  const url = URL.parse(text);
  if (url === null) return { ok: false, cause: 'url_form' };
  if (url.href.length > urlMaxCharacters) return { ok: false, cause: 'url_too_long' };
  if (url.port === '0') return { ok: false, cause: 'url_port' };

  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const literal = isIP(hostname) !== 0;
  const address = literal ? hostname : isLocalhost(hostname) ? '127.0.0.1' : null;
  const rejected = address === null ? checkName(hostname, allowed) : checkLiteral(address, literal, url, allowed);
  if (rejected !== null) return { ok: false, cause: rejected };
  if (isDisguised(text, url)) return { ok: false, cause: 'url_host_form' };
  if (url.protocol === 'http:' && address === null && isEmpty(allowed)) return { ok: false, cause: 'url_scheme' };
  return { ok: true, url, hostname, port, address };
}

/** Checks the text before it is parsed; the parser would drop or repair these parts. */
function checkText(text: string): UrlProblem | null {
  if (text.length > urlMaxCharacters) return 'url_too_long';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the parser silently drops tabs and newlines
  if (/[\u0000-\u0020\u007f-\u00a0\\]/.test(text) || !text.isWellFormed()) return 'url_characters';
  if (/^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(text)) return 'url_scheme';
  const authority = getAuthority(text);
  if (authority === '') return 'url_form'; // no scheme, https:host, https:///host
  if (authority.includes('@')) return 'url_credentials';
  return text.includes('#') ? 'url_fragment' : null;
}

function checkLiteral(address: string, literal: boolean, url: URL, allowed: AllowList): UrlProblem | null {
  const checked = checkAddress(address, allowed);
  if (!checked.ok) return literal ? checked.cause : 'url_host_local';
  return url.protocol === 'http:' && !checked.allowed ? 'url_scheme' : null;
}

const localSuffixes =
  /(^|\.)(local|localdomain|localhost|internal|intranet|private|corp|home|lan|arpa|test|example|invalid|onion|alt)$/;

function checkName(hostname: string, allowed: AllowList): UrlProblem | null {
  const name = hostname.replace(/\.$/, '');
  const inside = !name.includes('.') || localSuffixes.test(name);
  if (inside && isEmpty(allowed)) return 'url_host_local';
  if (hostname.length > 253) return 'url_host_form';
  // The parser accepts empty labels and characters that no host name has; a trailing dot fails as
  // an empty label.
  const wellFormed = hostname.split('.').every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label));
  return wellFormed ? null : 'url_host_form';
}

function isLocalhost(hostname: string): boolean {
  return /(^|\.)localhost\.?$/.test(hostname);
}

/** Returns whether the host is spelled unusually, apart from case, IDN and spellings of IPv6. */
function isDisguised(text: string, url: URL): boolean {
  const host = getAuthority(text).replace(/:\d*$/, '');
  if (host.includes('%') || host.endsWith('.')) return true;
  if (isIPv4(url.hostname)) return host !== url.hostname;
  const isAscii = Buffer.byteLength(host) === host.length;
  return !isAscii && !url.hostname.includes('xn--');
}

function getAuthority(text: string): string {
  return /^https?:\/\/([^/?#]*)/i.exec(text)?.[1] ?? '';
}

function isEmpty(allowed: AllowList): boolean {
  return allowed.rules.length === 0;
}
