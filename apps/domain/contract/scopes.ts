/** The seven scopes a key can carry; each is also a permission of a person. */
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

/** What a person may do beyond the reads; never a scope of a key. */
const managementPermissions = [
  'org.keys.manage',
  'org.webhooks.manage',
  'org.members.manage',
  'org.roles.manage',
  'org.seats.manage',
  'org.activity.read',
] as const;

/** Every permission a role can hold: the scopes, then the management permissions. */
export const permissions = [...scopes, ...managementPermissions] as const;

export type Permission = (typeof permissions)[number];

/** Whether a text is one of the seven scopes. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/**
 * Keys of the roles every organization has, in the order `listRoles` shows them. Their rows, with
 * fixed ids, come from the first migration; an own role may not take one of these keys.
 */
export const systemRoleKeys = ['owner', 'admin', 'billing', 'analyst', 'member'] as const;
