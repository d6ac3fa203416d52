import { createHash } from 'node:crypto';
import { z } from 'zod';
import { assertOwnerRemains } from '#domain/access/actor.ts';
import { OrganizationError } from '#domain/access/errors.ts';
import type { Permission } from '#domain/contract/scopes.ts';
import { type AffectedKey, type Impact, type MemberChange, previewImpact } from '#domain/members/impact.ts';
import { getMemberDetails, type MemberDetails } from '#domain/members/list-members.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { form, hiddenField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { describeReads } from '../../components/reads.ts';
import { displayName, formatCount } from '../../components/text.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type FormResponse, type Page, page } from '../../web/response.ts';
import { member, type Route } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberBreadcrumbs, memberPath, readPersonId } from './path.ts';

/** States how many keys a change affects, and whether one of them stops working. */
function summarize(keys: readonly AffectedKey[]): string {
  return keys.some(({ losesAllScopes }) => losesAllScopes)
    ? `${formatCount(keys.length, 'API key stops', 'API keys stop')} working.`
    : `${formatCount(keys.length, 'API key loses', 'API keys lose')} permissions.`;
}

export function affectedKeys(keys: readonly AffectedKey[]): Html {
  if (keys.length === 0) return html`<p>No API keys are affected.</p>`;
  const summary = html`<strong>${summarize(keys)}</strong> The following reads return 403 immediately:`;
  return html`${notice('warning', summary)}
    <ul class="stops">${keys.map(affectedKey)}</ul>
    <p class="quiet">To avoid an interruption, ask another member to rotate these keys first.</p>`;
}

function affectedKey(key: AffectedKey): Html {
  const loss = key.losesAllScopes ? html`<strong>stops working</strong>:` : html`can <strong>no longer read</strong>:`;
  const lost = key.operations.map((one) => html`<li>${describeReads([one])} <code>${one}</code></li>`);
  return html`<li>${renderKeyName(key)} ${loss} <ul>${lost}</ul></li>`;
}

const renderKeyName = ({ label, hint }: AffectedKey): Html =>
  label === '' ? html`<code>${hint}</code>` : html`“${displayName(label)}” (<code>${hint}</code>)`;

/** The field of the impact that the page showed. */
export const seenSchema = z.string().max(100).default('');

/** Renders that field, so that an action never has an impact that its page did not show. */
export const seenField = (keys: readonly AffectedKey[]): Html => hiddenField('seen', hashAffectedKeys(keys));

/** Returns whether the impact is still the one that the form's page showed. */
export const hasSeen = (seen: string, keys: readonly AffectedKey[]): boolean => seen === hashAffectedKeys(keys);

/** The problem of a form whose impact changed after its page was opened. */
export const changedImpact =
  'The affected API keys have changed since you opened this page. Nothing was changed. Review them again.';

const hashAffectedKeys = (keys: readonly AffectedKey[]): string =>
  createHash('sha256')
    .update(JSON.stringify(keys.map(({ id, scopes }) => [id, scopes])))
    .digest('base64url');

/** States that a member's clients stay with them. `href` leads to the clients; null: hidden. */
export function affectedClients({ openGrants }: Impact, href: string | null, whom: 'you' | 'them' = 'them'): Html {
  if (openGrants === 0) return html`<p>No clients are affected.</p>`;
  return html`<p><strong>${formatCount(openGrants, 'client stays', 'clients stay')} with ${whom}</strong>, including
    seats, until the access is ended or moved. ${href === null ? '' : html`<a href="${href}">View clients</a>`}</p>`;
}

/** The confirmation of a change: `consequence`, then the affected keys, then `clients`. */
interface Confirmation {
  title: string;
  button: string;
  consequence: Html;
  clients?: Html;
  /** By default those of the member's page. */
  breadcrumbs?: Page['breadcrumbs'];
  /** The path behind Cancel, by default the member's page. */
  cancel?: string;
}

/** Returns why the last owner cannot be changed so; null when the member can. */
function findObstacle(
  { console, organizationId }: MemberVisit,
  { isOwner, status, roles, personId }: MemberDetails,
  change: MemberChange,
): Promise<string | null> | null {
  const isOwnerRole = (id: string) => roles.some((role) => role.id === id && role.isSystem && role.key === 'owner');
  if (!isOwner || status !== 'active' || (change.kind === 'unassign' && !isOwnerRole(change.roleId))) return null;
  return assertOwnerRemains(console.database, organizationId, personId).then(
    () => null,
    (error: unknown) => {
      if (error instanceof OrganizationError) return error.message;
      throw error;
    },
  );
}

/**
 * Declares a change of a member whose page lists the affected API keys. If they change before the
 * form is submitted, the page is rendered again and nothing is changed.
 */
export function impactFormPage(declared: {
  pageName: string;
  name: string;
  path: string;
  permission?: Permission;
  buildChange: (visit: MemberVisit) => MemberChange;
  /** Returns the id of the member. By default the path contains it. */
  getPersonId?: (visit: MemberVisit) => string;
  confirm: (visit: MemberVisit, details: MemberDetails, impact: Impact) => Confirmation;
  act: (visit: MemberVisit, personId: string) => Promise<FormResponse>;
}): Route[] {
  const { buildChange, getPersonId = readPersonId, confirm, act, ...route } = declared;
  const preview = (visit: MemberVisit) => {
    const { database, now } = visit.console;
    return previewImpact(database, visit.organizationId, getPersonId(visit), buildChange(visit), now());
  };
  async function render(visit: MemberVisit, state: FormState): Promise<Page> {
    const { database, now } = visit.console;
    const details = await getMemberDetails(database, visit.organizationId, getPersonId(visit), now());
    const impact = await preview(visit);
    const { title, button, consequence, clients, ...links } = confirm(visit, details, impact);
    const { breadcrumbs = memberBreadcrumbs(visit, details), cancel = memberPath(visit, details.personId) } = links;
    const fields = html`<p>${consequence}</p>${affectedKeys(impact.keys)}${clients}${seenField(impact.keys)}`;
    const obstacle = await findObstacle(visit, details, buildChange(visit));
    const body = form(visit, { state, button, kind: 'danger', fields, cancel });
    return page({ title, breadcrumbs, body: obstacle === null ? body : notice('bad', obstacle) });
  }
  return member.formPage({
    ...route,
    stepUp: true,
    form: z.object({ seen: seenSchema }),
    async act(visit, { seen }) {
      if (hasSeen(seen, (await preview(visit)).keys)) return act(visit, getPersonId(visit));
      return { ...(await render(visit, { ...freshForm(), problem: changedImpact })), status: 422 };
    },
    render,
  });
}
