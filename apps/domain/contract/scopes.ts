/** The seven scopes that a key can have; each is also a permission of a person. */
export const scopes = [
  'org.read',
  'org.clients.read',
  'org.members.read',
  'org.analytics.read',
  'org.referrals.manage',
  'org.roles.read',
  'org.billing.manage',
] as const;

export type Scope = (typeof scopes)[number];

/** Permissions beyond the reads; never scopes of a key. */
const managementPermissions = [
  'org.keys.manage',
  'org.webhooks.manage',
  'org.members.manage',
  'org.roles.manage',
  'org.seats.manage',
  'org.activity.read',
] as const;

/** Every permission that a role can have: the scopes, then the management permissions. */
export const permissions = [...scopes, ...managementPermissions] as const;

export type Permission = (typeof permissions)[number];

/** Returns whether a text is one of the seven scopes. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/**
 * Keys of the roles that every organization has, in the order of `listRoles`. Their rows, with
 * fixed ids, come from `0002-organizations.ts`; an organization's own role may not use one of these
 * keys.
 */
export const systemRoleKeys = ['owner', 'admin', 'billing', 'analyst', 'member'] as const;
