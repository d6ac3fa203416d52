import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore, { type RulesetDefinition } from '@stoplight/spectral-core';
import spectralRulesets from '@stoplight/spectral-rulesets';
import { describe, expect, it } from 'vitest';
import { defaultBaseUrls } from '../../../apps/api/config.ts';
import { openApiText } from '../../../apps/api/openapi/document.ts';

const source = openApiText(defaultBaseUrls);

describe('the OpenAPI document', () => {
  it('has no finding by Spectral’s recommended rules', async () => {
    expect(await spectralFindings(source)).toEqual([]);
  });

  it('has no finding by Redocly’s recommended rules, warnings included', async () => {
    expect(await redoclyFindings(source)).toEqual([]);
  });

  it('without one operationId has a finding by both', async () => {
    const faulty = source.replace('"operationId": "getOrgSeats",', '');
    expect(await spectralFindings(faulty)).toContainEqual(expect.stringContaining('operation-operationId'));
    expect(await redoclyFindings(faulty)).toContainEqual(expect.stringContaining('operation-operationId'));
  });
});

async function spectralFindings(text: string): Promise<string[]> {
  const spectral = new spectralCore.Spectral();
  spectral.setRuleset({ extends: [[spectralRulesets.oas as RulesetDefinition, 'recommended']] });
  const findings = await spectral.run(text);
  return findings.map(({ code, path, message }) => `${code} at ${path.join('.')}: ${message}`);
}

async function redoclyFindings(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const findings = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  return findings.map(({ ruleId, location, message }) => `${ruleId} at ${location[0]?.pointer}: ${message}`);
}
