import { X509Certificate } from 'node:crypto';
import { z } from 'zod';

/** Returns whether a function that parses a text does not throw. */
export function canParse(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

/** Certificates in PEM. */
export const pemCertificate = z.string().refine((text) => canParse(() => new X509Certificate(text)), {
  error: 'must be a certificate in PEM, or several in a row',
});
