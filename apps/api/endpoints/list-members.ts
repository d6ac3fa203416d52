import { Members } from '#domain/contract/resources.ts';
import { membersSql } from '#domain/db/statements/members.ts';
import { endpoint } from '../endpoint.ts';

/** Members and their roles. */
export const listMembers = endpoint({
  operationId: 'listMembers',
  resource: '/members',
  scope: 'org.members.read',
  summary: 'Members and their roles',
  description: 'Everyone who has not left the organization, with the roles they hold. The list is complete.',
  response: Members,
  body: membersSql,
});
