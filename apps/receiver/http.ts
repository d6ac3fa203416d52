import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { rootCertificates } from 'node:tls';

/** Where a developer's receiver listens. */
export interface Target {
  url: string;
  /** PEM certificates beside the usual ones that an https receiver's may be signed by. */
  ca: string | null;
}

/**
 * Sends a request over a connection of its own, as deliveries are posted: over one that Node keeps, a receiver that
 * closes after its response without announcing it resets the next post. `headers` are names and values in turn, which
 * keeps spelling, order and repetition. Follows no redirect.
 *
 * @param options - `body` is null for a GET.
 * @throws Error of Node without a response within `timeoutMs`.
 */
export function request(
  { url: text, ca }: Target,
  options: { headers: readonly string[]; body: Buffer | null; timeoutMs: number },
): Promise<IncomingMessage> {
  const { headers, body, timeoutMs } = options;
  const url = new URL(text);
  const common = {
    agent: false,
    method: body === null ? 'GET' : 'POST',
    headers: [...headers, 'Host', url.host],
    signal: AbortSignal.timeout(timeoutMs),
  };
  return new Promise((resolve, reject) => {
    const sent =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...common, ...(ca !== null && { ca: [...rootCertificates, ca] }) }, resolve)
        : httpRequest(url, common, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Codes of a certificate that no known one has signed. */
const ofUntrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Returns why `request` failed, in a sentence without its full stop. */
export function describeProblem(error: unknown, { url }: Target, timeoutMs: number): string {
  const { code, name } = error as NodeJS.ErrnoException;
  const { host } = new URL(url);
  if (name === 'AbortError' || name === 'TimeoutError' || code === 'ABORT_ERR')
    return `${host} did not answer within ${timeoutMs / 1_000} s`;
  if (code === 'ECONNREFUSED') return `nothing listens at ${host}; start your receiver`;
  if (code !== undefined && ofUntrusted.has(code))
    return `the certificate of ${host} is not trusted (${code}); give the one that signed it with --ca-file`;
  return `${host} cannot be reached (${code ?? name})`;
}
