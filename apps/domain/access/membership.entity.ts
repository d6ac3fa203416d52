import { defineEntity, type Opt, p } from '@mikro-orm/core';
import type { Permission } from '../contract/scopes.ts';

/**
 * An organization. This and all entities have scalar keys and no relations: each query names the
 * rows it loads, and nothing is loaded implicitly. Columns have the property's name in snake case.
 */
export const Organization = defineEntity({
  name: 'Organization',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    slug: p.text(),
    kind: p.text(),
    status: p.text(),
    createdAt: p.datetime(),
  },
});

/** A person who signs in; `id` is the platform's `userId`. */
export const Person = defineEntity({
  name: 'Person',
  properties: { id: p.text().primary(), createdAt: p.datetime() },
});

const MembershipSchema = defineEntity({
  name: 'Membership',
  properties: {
    organizationId: p.uuid().primary(),
    personId: p.text().primary(),
    name: p.text(),
    email: p.text(),
    title: p.text().strictNullable(),
    status: p.text().$type<'invited' | 'active' | 'suspended' | 'left'>(),
    /** Whether the person has ever accepted it; set by a trigger. */
    accepted: p.boolean().default(false),
  },
});

/** The beginning of a name: imported ones have up to 10,000 characters, and an audit entry has a bound. */
const shortened = (name: string) => [...name].slice(0, 1000).join('');

/** What changed of a member, for the audit log: fields, and the old and new name. */
export interface MemberChanges {
  changed?: ('name' | 'title')[];
  renamed?: { from: string; to: string };
}

/** A person in an organization; only `active` may act. Triggers end keys and links. */
export class Membership extends MembershipSchema.class {
  /** Suspends access until it is reinstated. Returns false when it is suspended already. */
  suspend(): boolean {
    if (this.status === 'suspended') return false;
    this.status = 'suspended';
    return true;
  }

  /** Reinstates access, as invited if never accepted. Returns false when it is not suspended. */
  reinstate(): boolean {
    if (this.status !== 'suspended') return false;
    this.status = this.accepted ? 'active' : 'invited';
    return true;
  }

  /** Sets name and title. Returns what changed, which is empty when nothing did. */
  changeDetails(name: string, title: string | null): MemberChanges {
    const [from, oldTitle] = [this.name, this.title];
    this.name = name;
    this.title = title;
    const changed = [...(from === name ? [] : ['name' as const]), ...(oldTitle === title ? [] : ['title' as const])];
    return {
      ...(changed.length === 0 ? {} : { changed }),
      ...(from === name ? {} : { renamed: { from: shortened(from), to: shortened(name) } }),
    };
  }

  /** Ends the membership: only a new invitation begins another. */
  leave(): void {
    this.status = 'left';
  }
}
MembershipSchema.setClass(Membership);

const RoleSchema = defineEntity({
  name: 'Role',
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid().strictNullable(),
    key: p.text(),
    name: p.text(),
    description: p.text(),
    permissions: p.array().$type<Permission[]>(),
    position: p.smallint().strictNullable(),
  },
});

/** A set of permissions. Only system roles have a `position`, and no organization. */
export class Role extends RoleSchema.class {
  get isSystem(): Opt<boolean> {
    return this.organizationId === null;
  }

  get isOwner(): Opt<boolean> {
    return this.isSystem && this.key === 'owner';
  }

  /** Sets what the role permits. Returns what it gained and lost. */
  permit(permissions: readonly Permission[]): { added: Permission[]; removed: Permission[] } {
    const before = this.permissions;
    this.permissions = [...permissions];
    return {
      added: permissions.filter((permission) => !before.includes(permission)),
      removed: before.filter((permission) => !permissions.includes(permission)),
    };
  }
}
RoleSchema.setClass(Role);

const MembershipRoleSchema = defineEntity({
  name: 'MembershipRole',
  properties: { organizationId: p.uuid().primary(), personId: p.text().primary(), roleId: p.uuid().primary() },
});

export class MembershipRole extends MembershipRoleSchema.class {}
MembershipRoleSchema.setClass(MembershipRole);
