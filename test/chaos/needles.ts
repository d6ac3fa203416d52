/** A value that must not be found; `name` describes it without containing it. */
export interface Needle {
  name: string;
  bytes: Buffer;
}

/**
 * Base64 encodes three bytes as four characters, so a value has three forms, one per alignment.
 * Characters that depend on neighboring bytes are removed.
 */
function base64Forms(bytes: Buffer): Buffer[] {
  return [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
    const whole = padded.subarray(0, padded.length - (padded.length % 3)).toString('base64');
    const own = whole.slice(offset === 0 ? 0 : 4);
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')].map((text) => Buffer.from(text));
  });
}

/** Returns a value in every form: plain, in hex, and in base64 of either alphabet at any offset. */
export function listForms(name: string, bytes: Buffer): Needle[] {
  const hex = bytes.toString('hex');
  const forms = [bytes, Buffer.from(hex), Buffer.from(hex.toUpperCase()), ...base64Forms(bytes)];
  const texts = [...new Set(forms.map((form) => form.toString('latin1')))];
  return texts.map((text) => ({ name, bytes: Buffer.from(text, 'latin1') }));
}

/**
 * Searches for thousands of needles in one pass, by their first three bytes. A needle has at least
 * 8 bytes.
 */
export function createSearch(needles: readonly Needle[]): (haystack: Buffer) => string[] {
  const byStart = new Map<number, Needle[]>();
  const starts = new Uint8Array(2 ** 24);
  for (const needle of needles) {
    if (needle.bytes.length < 8) throw new RangeError(`the needle of ${needle.name} is too short to mean anything`);
    const start = needle.bytes.readUIntBE(0, 3);
    starts[start] = 1;
    byStart.set(start, [...(byStart.get(start) ?? []), needle]);
  }
  return (haystack) => {
    const found = new Set<string>();
    let start = 0;
    for (let index = 0; index < haystack.length; index += 1) {
      start = ((start << 8) | (haystack[index] ?? 0)) & 0xffffff;
      if (index < 2 || starts[start] === 0) continue;
      for (const { name, bytes } of byStart.get(start) ?? []) {
        if (haystack.subarray(index - 2, index - 2 + bytes.length).equals(bytes)) found.add(name);
      }
    }
    return [...found];
  };
}
