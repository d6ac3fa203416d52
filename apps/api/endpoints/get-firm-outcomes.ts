import { Outcomes } from '#domain/contract/resources.ts';
import { outcomesSql } from '#domain/db/statements/outcomes.ts';
import { endpoint } from '../endpoint.ts';

/** De-identified outcomes over 90 days. */
export const getFirmOutcomes = endpoint({
  operationId: 'getFirmOutcomes',
  resource: '/outcomes',
  scope: 'org.analytics.read',
  summary: 'De-identified outcomes over 90 days',
  description:
    'Outcomes across all client families together over the 90 whole UTC days before today. ' +
    'Nothing is reported for fewer than 5 families, and no metric to which fewer than 5 ' +
    'contributed.',
  response: Outcomes,
  body: outcomesSql,
});
