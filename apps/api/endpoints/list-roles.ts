import { Roles } from '#domain/contract/resources.ts';
import { rolesSql } from '#domain/db/statements/roles.ts';
import { endpoint } from '../endpoint.ts';

/** System roles and own roles. */
export const listRoles = endpoint({
  operationId: 'listRoles',
  resource: '/roles',
  scope: 'org.roles.read',
  summary: 'System roles and own roles',
  description: 'The roles every organization has, and the organization’s own, with the permissions each gives.',
  response: Roles,
  body: rolesSql,
});
