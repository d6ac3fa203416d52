import { z } from 'zod';
import { documentFields, formats, type Kind, type KindFormat } from './format.ts';
import { keyPath } from './problems.ts';

/** The valid fields of an object, and its problems by path below it. */
interface CheckedItem {
  value: Record<string, unknown>;
  problems: { path: string; problem: string }[];
}

type Check = (path: string, value: unknown) => CheckedItem;

/** The check of each kind. A misspelled key would lose its value, so unknown keys are rejected. */
export const checks: Record<Kind | 'document', Check> = {
  ...(Object.fromEntries(
    Object.entries(formats).map(([kind, format]) => [kind, buildCheck(format.fields, format.rules)]),
  ) as Record<Kind, Check>),
  document: buildCheck(documentFields),
};

function buildCheck(fields: KindFormat['fields'], rules?: KindFormat['rules']): Check {
  const shape = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.type]));
  const schema = z.strictObject(shape, { error: () => 'must be an object' });
  return (path, raw) => {
    const parsed = schema.safeParse(raw);
    const value = parsed.success ? parsed.data : rightFields(shape, raw);
    const problems = parsed.success ? [] : parsed.error.issues.flatMap((issue) => listProblems(path, issue));
    for (const [field, problem] of rules?.(value) ?? []) problems.push({ path: keyPath(path, field), problem });
    return { value, problems };
  };
}

/** Returns the valid fields, so that one wrong field does not hide the problems of others. */
function rightFields(shape: Record<string, z.ZodType>, raw: unknown): Record<string, unknown> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return {};
  const given: Record<string, unknown> = { ...raw };
  const fields = Object.entries(shape).map(([name, type]) => [name, type.safeParse(given[name])] as const);
  return Object.fromEntries(fields.flatMap(([name, parsed]) => (parsed.success ? [[name, parsed.data]] : [])));
}

function listProblems(parent: string, issue: z.core.$ZodIssue): { path: string; problem: string }[] {
  const path = issue.path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : keyPath(text, String(key))),
    parent,
  );
  if (issue.code !== 'unrecognized_keys') return [{ path, problem: issue.message }];
  return issue.keys.map((key) => ({ path: keyPath(path, key), problem: 'is not a key of the format' }));
}
