/**
 * Each key of both charts' values with what people write into it by mistake or on purpose: the
 * charts render objects that Kubernetes decodes, or say in plain words what is wrong.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { chart, listPods, type Manifest, operatorValues } from '#test/render-charts.ts';
import { type ChartValue, readValues } from '../../charts/docs/read-values.ts';
import { useGoProgram } from './go-program.ts';
import { kubernetesVersions, listUndecoded } from './schemas.ts';

const runRenderAll = useGoProgram('render-all');
const judgePods = useGoProgram('pod-security');

/**
 * Returns where a value is within its section, for sections that the same templates read from any of them: those of
 * the Deployments, and each Secret. Elsewhere the whole path: `to` of two servers, and the annotations of Service and
 * Ingress, are read by two templates.
 */
const getPlace = (path: string) => path.replace(/^(?:api|worker|console|secrets\.\w+)\./, '');

interface Case {
  chart: string;
  release: string;
  namespace: string;
  values: object;
  /** For a message. */
  what: string;
}

/**
 * What a value is replaced with: nothing, other types, numbers as text, and text that YAML reads as
 * something else.
 */
const texts = ['', '1', '1e10', 'x'.repeat(300), '"\': {{ .Values }} #\n- |Ä'];
const replacements = [null, {}, [], true, 0, 1.5, ...texts, [null], [{}]];

const readYaml = (file: string) => parse(readFileSync(path.join(import.meta.dirname, file), 'utf8'), { merge: true });
const getChartFolder = (name: string) => path.join(chart, '..', name);
/** Every option is on, so that every template writes something. */
const everything = {
  'org-api': merged(readYaml('../../charts/org-api/ci/us-values.yaml'), readYaml('all-options.yaml')),
  'org-api-operator': {
    ...operatorValues,
    webhooks: { enabled: true },
    monitoring: { enabled: true, rules: { runbookBaseUrl: 'https://git.example.com/runbooks' } },
  },
};

const buildCase = (name: keyof typeof everything, more: Partial<Case> = {}): Case => ({
  chart: getChartFolder(name),
  release: 'us',
  namespace: 'org-api-us',
  values: everything[name],
  what: name,
  ...more,
});

function listCases(name: keyof typeof everything): Case[] {
  const cases: Case[] = [];
  const tried = new Set<string>();
  for (const value of withSections(readValues(readFileSync(path.join(getChartFolder(name), 'values.yaml'), 'utf8')))) {
    // The same value of another section, if the same templates read it.
    const same = JSON.stringify([getPlace(value.path), value.added, value.default, value.children?.length]);
    if (tried.has(same)) continue;
    tried.add(same);
    const isOfTexts = typeof value.added.additionalProperties === 'object';
    const own = isOfTexts ? [{ a: '1e10' }, { a: null }] : [];
    const all = value.children === null ? [...replacements, ...own] : [null, {}, 1, ''];
    for (const one of all)
      cases.push(
        buildCase(name, {
          values: withValue(everything[name], value.path.split('.'), one),
          what: `${name} ${value.path}=${JSON.stringify(one)}`,
        }),
      );
  }
  return cases;
}

interface Rendered {
  objects: Manifest[];
  /** Of each case: its error, or the places of its objects in that list. */
  results: { error?: string; objects?: number[] }[];
}

function renderAll(cases: readonly Case[]): Rendered {
  const lines = runRenderAll(cases).trim().split('\n');
  const parsed = lines.map((line) => JSON.parse(line));
  return {
    objects: parsed.filter(({ object }) => object !== undefined).map(({ object }) => object),
    results: parsed.filter(({ object }) => object === undefined),
  };
}

/** The two ways in which the charts say that values are wrong. */
const inPlainWords = /values don't meet the specifications of the schema|The values have these problems:/;

describe.each(Object.keys(everything) as (keyof typeof everything)[])('%s', (name) => {
  it('renders, for any value, pods that are admitted and objects that decode, or says what is wrong', {
    timeout: 600_000,
  }, async () => {
    const cases = [buildCase(name), ...listCases(name)];
    const { objects, results } = renderAll(cases);
    const raw = results.flatMap(({ error }, index) =>
      error === undefined || inPlainWords.test(error) ? [] : [`${cases[index]?.what}: ${error}`],
    );
    expect(results).toHaveLength(cases.length);
    expect(results[0]?.error).toBeUndefined();
    expect(raw).toEqual([]);
    for (const version of kubernetesVersions) expect(await listUndecoded(objects, version), version).toEqual([]);
    expect(results.filter(({ error }) => error !== undefined).length).toBeGreaterThan(cases.length / 3);
    // A security context is the operator's own, and the values of these cases are none that holds.
    const judged = results.flatMap(({ objects = [] }, index) =>
      /SecurityContext|extraObjects/.test(cases[index]?.what ?? '') ? [] : objects,
    );
    const pods = listPods([...new Set(judged)].map((index) => objects[index]));
    expect(judgePods(pods.map(({ name, spec }) => ({ metadata: { name }, spec })))).toBe(
      `${pods.length} pods, 0 findings\n`,
    );
  });
});

/** Returns all values, and the sections that contain them. */
function withSections(values: readonly ChartValue[]): ChartValue[] {
  return values.flatMap((value) => [value, ...withSections(value.children ?? [])]);
}

/** Returns values with another one at a path. */
function withValue(values: object, [key = '', ...rest]: string[], value: unknown): object {
  const below = (values as Record<string, object | undefined>)[key] ?? {};
  return { ...values, [key]: rest.length === 0 ? value : withValue(below, rest, value) };
}

/** Merges values as Helm merges files: maps by key, everything else replaced. */
function merged(below: unknown, above: unknown): object {
  const isMap = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  if (!isMap(below) || !isMap(above)) return (above === undefined ? below : above) as object;
  const keys = [...new Set([...Object.keys(below), ...Object.keys(above)])];
  return Object.fromEntries(keys.map((key) => [key, merged(below[key], above[key])]));
}
