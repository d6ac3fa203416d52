import type { RoleRow } from '#domain/members/list-roles.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { truncate } from '../../components/text.ts';

/** The console's descriptions of system roles. The stored descriptions are the API's. */
const systemDescriptions: Record<string, string> = {
  owner:
    'Full access, including changes to owners. Have two owners, because only support can restore ' +
    'access after a lost second factor.',
  admin: 'Full access, except for changes to owners.',
  billing: 'Reads the organization, seat counts and subscriptions. Assigns and ends seats.',
  analyst: 'Reads the organization and its de-identified outcomes, without client names.',
  member: 'Reads the organization, members, roles and clients.',
};

export const describeRole = ({ isSystem, key, description }: RoleRow): Html =>
  html`<bdi>${isSystem ? (systemDescriptions[key] ?? description) : truncate(description, 300)}</bdi>`;
