// The file with the visitor's own matters: settings, data, and what stands under a chat that has ended.

import { addStyle } from "../shared/sheet";
import css from "./sheets.css?inline";

export { EndPanel } from "./EndPanel";
export { Settings } from "./Settings";

addStyle(css);
