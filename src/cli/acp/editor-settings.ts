import { UNASKED } from "../../index.ts";
import type { ChatSession } from "../chat/chat-session.ts";
import { modelName } from "../chat/model-name.ts";
import { offeredModels } from "../options/offered-models.ts";
import type { SessionSettings } from "./acp-sdk.ts";

/** What an editor can set in a session, and how it is set: what runs unasked, as modes and as an option, and the model. */
export function settingsOf({ unasked, model }: Pick<ChatSession, "unasked" | "model">): SessionSettings {
  const modes = UNASKED.map((id) => ({ id, name: `Unasked: ${id}` }));
  const models = [...new Set([model, ...offeredModels()].map(modelName))];
  const select = (id: string, name: string, currentValue: string, options: { value: string; name: string }[]) =>
    ({ type: "select", id, category: id, name, currentValue, options }) as const;
  return {
    modes: { currentModeId: unasked, availableModes: modes },
    configOptions: [
      select(
        "mode",
        "Runs unasked",
        unasked,
        modes.map(({ id: value, name }) => ({ value, name })),
      ),
      select(
        "model",
        "Model",
        modelName(model),
        models.map((value) => ({ value, name: value })),
      ),
    ],
  };
}
