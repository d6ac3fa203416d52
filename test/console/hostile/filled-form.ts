import type { Scene } from './scene.ts';

type Fields = Record<string, string | string[]>;

/** How a person would fill in a form of the console, so that it is carried out. */
export interface FilledForm {
  /** The page that draws it; the form's own address unless given. */
  page?: (scene: Scene) => string;
  /** Parts of the path that replace those of the scene. */
  params?: (scene: Scene) => Record<string, string>;
  /** What a person types. The page adds its hidden fields. */
  fields?: (scene: Scene) => Fields;
  /** Why the form cannot be sent before another step. Other tests send it. */
  notAlone?: string;
}
