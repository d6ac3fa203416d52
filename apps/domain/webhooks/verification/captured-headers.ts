/**
 * Reads the signature headers of a captured delivery, strictly: each problem is a sentence.
 */

/** Headers by name in any case; one that came several times is a list (`headersDistinct`). */
export type CapturedHeaders = Record<string, string | readonly string[] | undefined>;

/** The content of a header, or what is wrong with it. */
export type Read<T> = { value: T } | { problem: string };

interface ServiceSignature {
  timestampSeconds: number;
  /** 32 bytes each, in the header's order. */
  macs: Buffer[];
}

/** `webhook-id`, `webhook-timestamp` and `webhook-signature` together. */
interface StandardSignature extends ServiceSignature {
  id: string;
}

/** Reads `Service-Signature: t=<unix>,v1=<hex>[,v1=<hex>]`; ignores parts of other schemes. */
export function readServiceSignature(headers: CapturedHeaders): Read<ServiceSignature> {
  const header = readHeader(headers, 'Service-Signature');
  if ('problem' in header) return header;
  const parts = header.value.split(',');
  const times = parts.filter((part) => /^t=\d{1,12}$/.test(part));
  const macs = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice('v1='.length));
  if (times.length !== 1) return { problem: 'Service-Signature has no single t=<seconds since 1970>' };
  if (macs.length === 0) return { problem: 'Service-Signature has no v1=<signature>' };
  if (!macs.every((mac) => /^[0-9a-f]{64}$/.test(mac))) {
    return { problem: 'a v1 of Service-Signature is not 64 lower-case hexadecimal digits' };
  }
  const timestampSeconds = Number(times[0]?.slice('t='.length));
  return { value: { timestampSeconds, macs: macs.map((mac) => Buffer.from(mac, 'hex')) } };
}

/** Reads the three `webhook-` headers; ignores signatures of other versions. */
export function readStandardSignature(headers: CapturedHeaders): Read<StandardSignature> {
  const id = readHeader(headers, 'webhook-id');
  if ('problem' in id) return id;
  const time = readHeader(headers, 'webhook-timestamp');
  if ('problem' in time) return time;
  const signature = readHeader(headers, 'webhook-signature');
  if ('problem' in signature) return signature;
  const macs = signature.value.split(' ').filter((part) => part.startsWith('v1,'));
  if (!/^\d{1,12}$/.test(time.value)) return { problem: 'webhook-timestamp is not a number of seconds since 1970' };
  if (macs.length === 0) return { problem: 'webhook-signature has no v1,<signature>' };
  if (!macs.every((mac) => /^v1,[A-Za-z0-9+/]{43}=$/.test(mac))) {
    return { problem: 'a v1 of webhook-signature is not the base64 of 32 bytes' };
  }
  return {
    value: {
      id: id.value,
      timestampSeconds: Number(time.value),
      macs: macs.map((mac) => Buffer.from(mac.slice('v1,'.length), 'base64')),
    },
  };
}

/** Returns the one value of a header, in any case of its name. */
export function readHeader(headers: CapturedHeaders, name: string): Read<string> {
  const values = Object.entries(headers)
    .filter(([candidate]) => candidate.toLowerCase() === name.toLowerCase())
    .flatMap(([, value]) => value ?? []);
  const [value] = values;
  if (value === undefined || value === '') return { problem: `the header ${name} is missing` };
  if (values.length > 1) return { problem: `the header ${name} occurs ${values.length} times` };
  return { value };
}
