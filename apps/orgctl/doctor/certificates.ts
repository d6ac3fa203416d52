import { X509Certificate } from 'node:crypto';
import { connect, TLSSocket } from 'node:tls';
import { dayMs } from '#domain/contract/durations.ts';
import { createFindings, type Finding } from './finding.ts';

const { ok, warning, failed } = createFindings('certificates');
/** How many days before its end a certificate needs a person: renewals come earlier. */
const warnDays = 14;
const connectTimeoutMs = 5_000;

/** Checks when a certificate ends. `name` says whose it is. */
export function checkEnd(name: string, certificate: X509Certificate, nowMs = Date.now()): Finding {
  const days = Math.floor((certificate.validToDate.getTime() - nowMs) / dayMs);
  const remedy = 'Renew it, and restart the pods that read it.';
  if (days < 0) return failed(`${name} has ended`, remedy);
  if (days < warnDays) return warning(`${name} ends in ${days} days`, remedy);
  return ok(`${name} is valid for ${days} days`);
}

/** Checks every certificate of a PEM text. */
export function checkPem(name: string, pem: string): Finding[] {
  const parts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return parts.map((part) => checkEnd(name, new X509Certificate(part)));
}

/** Checks the certificate that a server showed on an open connection; nothing for plain text. */
export function checkPeer(name: string, socket: unknown): Finding[] {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined ? [] : [checkEnd(name, certificate)];
}

/** Checks the certificate that a server shows, whether or not it is trusted: its clients check that. */
export function checkServer(name: string, server: { host: string; port: number; servername?: string }) {
  return new Promise<Finding[]>((resolve) => {
    const socket = connect({ ...server, ALPNProtocols: ['h2'], rejectUnauthorized: false, timeout: connectTimeoutMs });
    const end = (findings: Finding[]) => {
      socket.destroy();
      resolve(findings);
    };
    socket.once('secureConnect', () => end(checkPeer(name, socket)));
    socket.once('timeout', () => end([]));
    socket.once('error', () => end([]));
  });
}
