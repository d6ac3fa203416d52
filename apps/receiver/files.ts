import { readFileSync, writeFileSync } from 'node:fs';
import { generateSecret, isSecret } from '#domain/webhooks/secret.ts';
import { describeSecretProblem } from '#domain/webhooks/verification/delivery-checks.ts';
import { UsageError } from '#runtime/errors.ts';

/**
 * Returns the secret of a file. White space at its end is not part of it.
 *
 * @throws UsageError when the file cannot be read or contains anything else.
 */
export function readSecretFile(file: string): string {
  const secret = readText('--secret-file', file).replace(/[ \t\r\n]+$/, '');
  if (isSecret(secret)) return secret;
  throw new UsageError(`--secret-file: the secret in ${file} ${describeSecretProblem(secret)}.`);
}

/**
 * Returns the secret of a file, and first creates a file that does not exist, with a new one, which only its owner can
 * read.
 *
 * @throws UsageError when the file cannot be read or written, or contains anything else.
 */
export function keepSecretFile(file: string): string {
  try {
    writeFileSync(file, `${generateSecret()}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new UsageError(`--secret-file: ${file} cannot be written (${code}).`);
  }
  return readSecretFile(file);
}

/** Returns the PEM certificates of a file. @throws UsageError when it cannot be read. */
export const readCertificates = (file: string): string => readText('--ca-file', file);

function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${option}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}
