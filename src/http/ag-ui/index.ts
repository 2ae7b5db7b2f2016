export { agUiHandler } from "./ag-ui-handler.ts";
