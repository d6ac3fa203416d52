import { defineEntity, p } from '@mikro-orm/core';

/**
 * Organizations, their people and roles: one entity per table of migration 0002, columns named
 * alike in snake case. Entities hold scalar keys and no relations: each query of ours names the
 * rows it touches, and nothing loads behind its back.
 */
export const Organization = defineEntity({
  name: 'Organization',
  tableName: 'organization',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    slug: p.text(),
    kind: p.text(),
    status: p.text(),
    createdAt: p.datetime(),
  },
});

/** Who signs in; `id` is the platform's `userId`. */
export const Person = defineEntity({
  name: 'Person',
  tableName: 'person',
  properties: { id: p.text().primary(), createdAt: p.datetime() },
});

/**
 * A person in an organization: what it calls them, and whether they may act (`active` alone may).
 */
export const Membership = defineEntity({
  name: 'Membership',
  tableName: 'membership',
  properties: {
    organizationId: p.uuid().primary(),
    personId: p.text().primary(),
    name: p.text(),
    email: p.text(),
    title: p.text().strictNullable(),
    status: p.text().$type<'invited' | 'active' | 'suspended' | 'left'>(),
    /** Whether the person has ever accepted it; a trigger keeps it. */
    accepted: p.boolean(),
  },
});

/**
 * A set of permissions. System roles have no organization and a `position`; own roles have an
 * organization and none.
 */
export const Role = defineEntity({
  name: 'Role',
  tableName: 'role',
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid().strictNullable(),
    key: p.text(),
    name: p.text(),
    description: p.text(),
    permissions: p.array(),
    position: p.smallint().strictNullable(),
  },
});

/** A role that a member holds. */
export const MembershipRole = defineEntity({
  name: 'MembershipRole',
  tableName: 'membership_role',
  properties: { organizationId: p.uuid().primary(), personId: p.text().primary(), roleId: p.uuid().primary() },
});
