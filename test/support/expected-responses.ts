import type { z } from 'zod';
import type { Member, Role } from '#domain/contract/resources.ts';

/** Operation → body, of one organization, in the form of `test/fixtures/*.expected.json`. */
export type Responses = Record<string, unknown>;

/** The same JSON with every date-time moved by whole days, as `import --today` moves the data. */
export function shifted(value: unknown, days: number): unknown {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(value))
    return new Date(Date.parse(value) + days * 86_400_000).toISOString();
  if (Array.isArray(value)) return value.map((item) => shifted(item, days));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shifted(item, days)]));
}

/**
 * Returns a response in the form of the expected file: ids of system roles are the service's, so it
 * names roles by key.
 */
export function comparable(operationId: string, body: unknown): unknown {
  if (operationId === 'listMembers') {
    return (body as z.infer<typeof Member>[]).map(({ roles, ...member }) => ({
      ...member,
      roleKeys: roles.map(({ key }) => key),
    }));
  }
  if (operationId !== 'listRoles') return body;
  const roles = body as z.infer<typeof Role>[];
  return {
    systemKeys: roles.filter(({ isSystem }) => isSystem).map(({ key }) => key),
    own: roles.filter(({ isSystem }) => !isSystem).map(({ isSystem: _, ...role }) => role),
  };
}
