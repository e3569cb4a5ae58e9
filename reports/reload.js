// Added to pages by `gpubench serve`: loads the page anew when the report was written again. It asks
// by adding script elements, since the pages' content security policy allows no other request.
"use strict";

(() => {
  const root = document.documentElement;
  const shown = document.currentScript.dataset.version;
  const again = () => setTimeout(ask, 1000);
  function ask() {
    const script = document.createElement("script");
    script.src = "/~gpubench/version.js";
    script.onload = () => {
      script.remove();
      if (root.dataset.served === shown) again();
      else location.reload();
    };
    script.onerror = () => {
      script.remove();
      again();
    };
    document.head.append(script);
  }
  again();
})();
