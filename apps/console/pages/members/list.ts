import { z } from 'zod';
import { listMembers, type MemberFilter } from '#domain/members/list-members.ts';
import { getRoleDetails } from '#domain/members/list-roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { hiddenField, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { queryString } from '../../components/list-filter.ts';
import { pager } from '../../components/pager.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { memberStatusLabel } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { freshForm } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberColumns } from './cells.ts';
import { memberTabs } from './member-tabs.ts';

const membersPerPage = 50;

const statuses = ['present', 'active', 'invited', 'suspended', 'left', 'all'] as const;

const querySchema = z.object({
  q: searchText,
  status: z.enum(statuses).catch('present'),
  role: z.guid().nullable().catch(null),
  account: z.enum(['linked', 'none']).nullable().catch(null),
  after: z.string().max(255).nullable().catch(null),
});

const alphabetical = { first: 'First page', newer: 'Previous page', older: 'Next page' };

type Query = z.output<typeof querySchema>;

/** Lists the members of the organization, by name. */
export const listRoutes = [
  member.view({
    name: 'listMembers',
    path: '/members',
    permission: 'org.members.read',
    query: querySchema,
    show: membersPage,
  }),
];

async function membersPage(visit: MemberVisit, query: Query): Promise<Page> {
  const { database, now } = visit.console;
  // How members sign in is for who manages them.
  const account = visit.may('org.members.manage') ? query.account : null;
  const filter: MemberFilter = { status: query.status, text: query.q, roleId: query.role, account };
  const role = query.role === null ? null : await getRoleDetails(database, visit.organizationId, query.role);
  const { rows, next } = await listMembers(database, visit.organizationId, filter, query.after, membersPerPage, now());
  const isAll = query.q === '' && query.status === 'present' && query.role === null && account === null;
  return page({
    title: 'Members',
    actions: visit.may('org.members.manage') ? linkButton(visit.at('/members/invite'), 'Invite member') : null,
    body: html`
      ${memberTabs(visit, 'members')}
      ${role === null ? nothing : onlyRole(visit, role.name)}
      ${account === null ? nothing : onlyAccount(visit, account)}
      ${search(visit, query, isAll)}
      ${
        rows.length === 0 ? emptyList(visit, query) : table({ caption: 'Members', columns: memberColumns(visit), rows })
      }
      ${rows.length === 1 && isAll && query.after === null ? secondOwnerHint(visit) : nothing}
      ${pager({
        isFirst: query.after === null,
        older: next,
        words: alphabetical,
        href: (after) => formatHref(visit, { ...query, after }),
      })}`,
  });
}

const onlyRole = (visit: MemberVisit, name: string): Html =>
  html`<p>Members with role ${displayName(name)}. <a href="${visit.at('/members')}">View all members</a></p>`;

const onlyAccount = (visit: MemberVisit, account: 'linked' | 'none'): Html =>
  html`<p>Members who sign in with
    ${account === 'linked' ? html`a linked account at the` : html`a password only, and not at the`}
    <a href="${visit.at('/sign-in')}">sign-in provider</a>. <a href="${visit.at('/members')}">View all members</a></p>`;

function search(visit: MemberVisit, query: Query, isAll: boolean): Html {
  const state = freshForm({ q: query.q, status: query.status });
  return searchForm({
    action: visit.at('/members'),
    label: 'Search members',
    clear: isAll ? null : visit.at('/members'),
    fields: html`
      ${searchField(state, 'Name, title or email')}
      ${selectField(state, { name: 'status', label: 'Status', required: false, options: statusOptions })}
      ${query.role === null ? nothing : hiddenField('role', query.role)}
      ${query.account === null ? nothing : hiddenField('account', query.account)}`,
  });
}

const statusLabels: Record<(typeof statuses)[number], string> = {
  present: 'All current',
  active: memberStatusLabel('active'),
  invited: memberStatusLabel('invited'),
  suspended: memberStatusLabel('suspended'),
  left: memberStatusLabel('left'),
  all: 'All, including former',
};

const statusOptions = statuses.map((value) => ({ value, label: statusLabels[value] }));

function emptyList(visit: MemberVisit, { status }: Query): Html {
  return emptyState({
    icon: 'members',
    title: 'No matching members',
    body:
      status === 'present'
        ? html`Change the search, or <a href="${visit.at('/members?status=all')}">view all, including former</a>.`
        : html`Change the search, or <a href="${visit.at('/members')}">view all members</a>.`,
  });
}

/** Suggests a second owner: only support can restore access after a lost second factor. */
const secondOwnerHint = (visit: MemberVisit): Html =>
  html`<p>You are the only member. ${
    visit.may('org.members.manage')
      ? html`<a href="${visit.at('/members/invite')}">Invite a second owner</a>, so that your organization keeps access
          if you lose your second factor. Otherwise, contact support to restore it.`
      : nothing
  }</p>`;

const formatHref = (visit: MemberVisit, { q, status, role, account, after }: Query): string =>
  visit.at(`/members${queryString({ q, status: status === 'present' ? null : status, role, account, after })}`);
