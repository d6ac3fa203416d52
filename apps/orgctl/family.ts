import { z } from 'zod';
import {
  type ErasedFamily,
  type ErasureCertificate,
  eraseAgain,
  eraseFamily,
  findErasure,
} from '#domain/clients/erase-family.ts';
import { brokenConstraint } from '#domain/db/constraint.ts';
import type { Noun } from './command.ts';
import { CommandError } from './errors.ts';
import { readText } from './read-text.ts';

/** `orgctl family …` */
export const family: Noun = {
  noun: 'family',
  summary: 'the erasure of families',
  commands: [
    {
      verb: 'erase',
      summary: 'end the access to a family in every organization, erase its name and id, and print the certificates',
      options: {
        family: { value: 'ID', about: 'the family, by its id at the platform', required: true },
        reference: { value: 'R', about: 'the number of the case; never a name', required: true },
      },
      async run(options, { database, report }) {
        const input = { familyId: options.getId('family'), reference: options.get('reference') };
        const certificates = await eraseFamily(database, input).catch((error: unknown) => {
          const sentence = rejections[brokenConstraint(error) ?? ''];
          throw sentence === undefined ? error : new CommandError(sentence);
        });
        for (const { place, id } of certificates.flatMap(({ mentions }) => mentions))
          report(`${place} ${id} has the name: change or delete that text.`);
        return printed(certificates);
      },
    },
    {
      verb: 'certificate',
      summary: 'print the certificate of an erasure, with the time of its completion',
      options: { erasure: { value: 'ID', about: 'the erasure', required: true } },
      async run(options, { database }) {
        const certificate = await findErasure(database, options.getId('erasure'));
        if (certificate === null) throw new CommandError('There is no such erasure.');
        return printed(certificate);
      },
    },
    {
      verb: 'erase-again',
      summary: 'after a backup was restored and before the API starts: erase what the certificates of a file name',
      options: {
        certificates: {
          value: 'FILE',
          about: 'certificates as they were printed, or JSON lines of the worker’s log',
          required: true,
        },
      },
      async run(options, { database }) {
        const erased = await readCertificates(options.get('certificates'));
        const certificates = await eraseAgain(database, erased);
        return {
          json: certificates,
          text: `${erased.length} families in the file. The database had some: ${certificates.length} certificates.`,
        };
      },
    },
  ],
};

const rejections: Readonly<Record<string, string>> = {
  no_such_family: 'No organization has this family, and it was not erased.',
  family_erased: 'The family was erased before a backup was restored. Its certificate is where those are kept.',
  argument_invalid: '--reference: enter a case number of at most 64 characters: letters, digits and . _ / -',
};

const printed = (document: ErasureCertificate | ErasureCertificate[]) => ({
  json: document,
  text: JSON.stringify(document, null, 2),
});

const Erased = z.object({
  familyDigest: z.string().regex(/^[0-9a-f]{64}$/),
  reference: z.string().regex(/^[A-Za-z0-9._/-]{1,64}$/),
});

/**
 * Reads the certificates of a file: one JSON document, or JSON lines. Each family is returned once.
 *
 * @throws CommandError when the file cannot be read or has no certificate, or a broken one.
 */
async function readCertificates(file: string): Promise<ErasedFamily[]> {
  const text = await readText(file);
  const documents = [text, ...text.split('\n')].filter((part) => part.includes('"familyDigest"')).map(parseJson);
  const [whole, ...lines] = documents;
  const found = whole === undefined ? lines.flatMap(findCertificates) : findCertificates(whole);
  const read = z.array(Erased).safeParse(found);
  const isCut = whole === undefined && lines.includes(undefined);
  if (isCut || !read.success || found.length === 0)
    throw new CommandError(`${file} contains no certificates, or a broken one. Enter complete JSON.`);
  return [...new Map(read.data.map((erased) => [erased.familyDigest, erased])).values()];
}

/** Returns the objects with a digest of a family, at any depth. */
function findCertificates(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return [];
  return 'familyDigest' in value ? [value] : Object.values(value).flatMap(findCertificates);
}

/** Returns undefined for what is not JSON. A log's line may begin with a prefix. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.slice(Math.max(0, text.search(/[[{]/))));
  } catch {
    return undefined;
  }
}
