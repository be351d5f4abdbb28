// The file that comes with the first finished answer.

import { addStyle } from "../shared/sheet";
import css from "./answer.css?inline";

export { sha256 } from "../sha256";
export { MarkdownText } from "./Markdown";
export { ReplyActions } from "./ReplyActions";
export { heard } from "./reading";

addStyle(css);
