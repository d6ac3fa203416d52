import { Organization } from '#domain/contract/resources.ts';
import { organizationSql } from '#domain/db/statements/organization.ts';
import { endpoint } from '../endpoint.ts';

/** The organization’s record. */
export const getOrg = endpoint({
  operationId: 'getOrg',
  resource: '',
  scope: 'org.read',
  summary: 'The organization’s record',
  description: 'The organization’s own record: its name, slug, kind, status and when it was created.',
  response: Organization,
  body: organizationSql,
});
