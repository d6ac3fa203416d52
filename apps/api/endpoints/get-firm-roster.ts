import { Roster } from '#domain/contract/resources.ts';
import { rosterSql } from '#domain/db/statements/roster.ts';
import { endpoint } from '../endpoint.ts';

/** The roster of client families. */
export const getFirmRoster = endpoint({
  operationId: 'getFirmRoster',
  resource: '/clients',
  scope: 'org.clients.read',
  summary: 'The roster of client families',
  description:
    'Which families gave the organization’s professionals access and since when: names and dates ' +
    'only, never what a family writes, files, pays or records. The list is complete.',
  response: Roster,
  body: rosterSql,
});
