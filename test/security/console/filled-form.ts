import type { Scene } from './scene.ts';

type Fields = Record<string, string | string[]>;

/** How a person fills in a form of the console so that it succeeds. */
export interface FilledForm {
  /** The page with the form; by default the form's own URL. */
  page?: (scene: Scene) => string;
  /** Parts of the path that replace those of the scene. */
  params?: (scene: Scene) => Record<string, string>;
  /** The person's input. The page adds its hidden fields. */
  fields?: (scene: Scene) => Fields;
  /** Why the form cannot be sent without another step. Other tests send it. */
  notAlone?: string;
}
