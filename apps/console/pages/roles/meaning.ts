import type { RoleRow } from '#domain/organization/list-roles.ts';
import { truncate } from '../../components/display-name.ts';
import { type Html, html } from '../../web/html.ts';

/** What the system roles are for; their rows' own descriptions are the API's. */
const systemMeaning: Record<string, string> = {
  owner:
    'Everything, and alone the say over owners. Have two: who lost their second factor is let in again by the operator of this service alone, and meanwhile the other goes on.',
  admin: 'Everything an owner may do, but for changing owners and making new ones.',
  billing: 'The organization, its seat counts and subscriptions; gives and ends seats.',
  analyst: 'The organization and its de-identified outcomes; no names of families.',
  member: 'The organization, its people and roles, and the roster of clients.',
};

/** What a role is for, in a sentence. */
export const roleMeaning = ({ isSystem, key, description }: RoleRow): Html =>
  html`<bdi>${isSystem ? (systemMeaning[key] ?? description) : truncate(description, 300)}</bdi>`;
