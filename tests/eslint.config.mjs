// Rules of the browser's scripts, for `python -m tests.scripts`.

import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: "module" },
    rules: {
      "no-undef": "off", // the types know the names
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      eqeqeq: "error",
      "no-shadow": "off", // scripts of a bundle stand one after the other in one scope
      "no-unused-vars": ["error", { args: "after-used" }],
      "max-lines-per-function": ["error", 60],
    },
  },
];
