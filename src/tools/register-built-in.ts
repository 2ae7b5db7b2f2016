import { registerBuiltInTools } from "../agent/offer-tools.ts";
import { workspaceTools } from "./workspace-tools.ts";

registerBuiltInTools(workspaceTools);
