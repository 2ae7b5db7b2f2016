import { checkArgument } from "../../session/check-arguments.ts";
import { checkIsModel, type Model } from "./model.ts";
import { createModel } from "./model-providers.ts";

/** Options whose model may be given by its name, as `provider/id`; see `createModel`. */
export type WithModelName<Options extends { readonly model?: Model }> = Omit<Options, "model"> & {
  /** The model to ask, or its name as `provider/id`. */
  readonly model?: Model | string;
};

/**
 * The model that was given, or the one of that name.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the call for anything else, and the errors of `createModel`.
 */
export function namedModel(model: unknown, call: string): Model {
  if (typeof model !== "string") {
    checkIsModel(model, call);
    return model;
  }
  checkArgument(model !== "", model, call, 'a model, or the name of one, such as "openai/gpt-5-mini"');
  return createModel(model);
}

/** The options with the model that they name. Other values are left to later checks, which also accept an executor. */
export function withNamedModel<Options extends { readonly model?: Model }>(
  options: WithModelName<Options>,
  call: string,
): Options {
  const { model } = options;
  return (typeof model === "string" ? { ...options, model: namedModel(model, call) } : options) as unknown as Options;
}
