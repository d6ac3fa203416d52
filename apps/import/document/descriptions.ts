import { findFieldDescription } from '#domain/contract/platform.ts';
import type { Kind } from './format.ts';

/** What the JSON Schema says of fields that no column of the platform's views holds, or that mean more here. */
export const ownDescriptions: Partial<Record<Kind | 'document', Record<string, string>>> = {
  document: {
    $schema: 'Where editors find this schema. It is not read.',
    region: 'The region of the installation. A document of another region is rejected.',
    asOf: 'The UTC day that the document describes, tomorrow at the latest.',
    organizations: 'The organizations to create or change. Others stay as they are.',
  },
  organization: {
    roles: 'Roles of its own, beside those that every organization has. Roles that are left out stay.',
    members: 'Its members. Members that are left out stay, or end with --complete.',
    families: 'The families that its grants and days refer to. Families that are left out stay.',
    grants: 'The access that families gave to its members. Grants that are left out stay, or end with --complete.',
    seats: 'The seats of families. An assigned seat needs an active grant and a free seat of the plan.',
    seatPlan: 'How many seats it has. Without one, the plan stays; a new organization has no seats.',
    referralCodes: 'Its referral codes. Codes that are left out stay, or end with --complete.',
    referralInvoices: 'The shares of its referrals by month. Shares that are left out stay.',
    familyDays:
      'Counts by family and day. They replace all days of the families of the document; without it, days stay.',
  },
  member: {
    roleKeys: 'The keys of all roles of the member. Without it, the roles stay; an empty list removes them.',
  },
  seatPlan: {
    pricePerSeat: 'The price of one seat. Null: none is shown.',
    subscriptions: 'Subscriptions that pay for seats. Subscriptions that are left out stay, or end with --complete.',
  },
  referralCode: {
    referrals: 'Families that used the code. Referrals that are left out stay.',
  },
};

/** Returns what the JSON Schema says of a field, beside its type. */
export function findDescription(kind: Kind | 'document', field: string): string | undefined {
  return ownDescriptions[kind]?.[field] ?? findFieldDescription(kind, field);
}
