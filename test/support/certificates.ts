import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * Certificates created at run time, so that no key is committed and neither openssl nor a package
 * is needed. X.509 v3, ECDSA P-256 with SHA-256, encoded as DER (RFC 5280): only what TLS tests
 * need.
 */
export interface TestCertificate {
  /** PEM. */
  cert: string;
  /** PEM. */
  key: string;
  subject: string;
}

interface Wanted {
  subject: string;
  /** Host names and IPv4 addresses. */
  names?: readonly string[];
  issuer?: TestCertificate;
  isAuthority?: boolean;
  fromDay?: number;
  toDay?: number;
  /** The certified key; else a new one. */
  privateKey?: KeyObject;
  /** Further extensions. */
  further?: readonly Buffer[];
}

/** Days count from today; without an issuer the certificate is self-signed. */
export function makeCertificate({
  subject,
  names = [],
  issuer,
  isAuthority = false,
  fromDay = -1,
  toDay = 1,
  privateKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  further = [],
}: Wanted): TestCertificate {
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const signer: KeyObject = issuer === undefined ? privateKey : createPrivateKey(issuer.key);
  const body = sequence(
    tagged(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    commonName(issuer?.subject ?? subject),
    sequence(time(fromDay), time(toDay)),
    commonName(subject),
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions(names, isAuthority), ...further)),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, signer)]));
  const base64 = sequence(body, ecdsaWithSha256, signature).toString('base64');
  const lines = base64.match(/.{1,64}/g)?.join('\n') ?? '';
  return { cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`, key, subject };
}

/** Returns an extension that is not critical. `id`: its object identifier in DER, in hex. */
export const extension = (id: string, value: Buffer): Buffer => sequence(identifier(id), der(0x04, value));

export function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

export const tagged = (tag: number, ...parts: Buffer[]) => der(tag, Buffer.concat(parts));
export const sequence = (...parts: Buffer[]) => tagged(0x30, ...parts);
const identifier = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const ecdsaWithSha256 = sequence(identifier('2a8648ce3d040302'));

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(identifier('550403'), der(0x0c, Buffer.from(name)))));
}

function time(day: number): Buffer {
  const iso = new Date(Date.now() + day * 86_400_000).toISOString(); // 2026-01-02T03:04:05.678Z
  return der(0x17, Buffer.from(`${iso.slice(2, 19).replace(/[-T:]/g, '')}Z`));
}

function extensions(names: readonly string[], isAuthority: boolean): Buffer[] {
  const basic = sequence(...(isAuthority ? [der(0x01, Buffer.from([0xff]))] : []));
  const list = names.map((name) =>
    isIP(name) === 4 ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name)),
  );
  const constraints = sequence(identifier('551d13'), der(0x01, Buffer.from([0xff])), der(0x04, basic));
  return list.length === 0
    ? [constraints]
    : [constraints, sequence(identifier('551d11'), der(0x04, sequence(...list)))];
}
