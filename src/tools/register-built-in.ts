import { registerBuiltInTools } from "../agent/tools/offer-tools.ts";
import { workspaceTools } from "./workspace-tools.ts";

registerBuiltInTools(workspaceTools);
