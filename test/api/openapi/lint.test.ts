import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore, { type RulesetDefinition } from '@stoplight/spectral-core';
import spectralRulesets from '@stoplight/spectral-rulesets';
import { describe, expect, it } from 'vitest';
import { defaultBaseUrls } from '../../../apps/api/openapi/base-urls.ts';
import { openApiText } from '../../../apps/api/openapi/document.ts';

const source = openApiText(defaultBaseUrls);

describe('the OpenAPI document', () => {
  it('gives Spectral’s recommended rules nothing to say', async () => {
    expect(await spectralFindings(source)).toEqual([]);
  });

  it('gives Redocly’s recommended rules nothing to say, warnings included', async () => {
    expect(await redoclyFindings(source)).toEqual([]);
  });

  it('would be told of a fault by both', async () => {
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
