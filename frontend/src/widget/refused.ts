// The page that the server shows in a widget's frame instead of the chat. It tells the embedding page why, so that its
// console says what to do; the visitor reads the page itself.

import { sealed } from "../hostlink";

const { code = "", host = "", sentence = "" } = document.body.dataset;
if (window.parent !== window) window.parent.postMessage(sealed({ type: "error", code, sentence }), host);
