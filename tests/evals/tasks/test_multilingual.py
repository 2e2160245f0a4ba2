import string
from collections import Counter

import pytest

from evals.errors import InputError
from evals.task import Item, Message
from evals.tasks.languages import LANGUAGES, Language
from evals.tasks.multilingual import QUESTIONS, Multilingual, find_language, plain_prompt

TASK = Multilingual()
CODES = list(LANGUAGES)


def item(language: str, kind: str, words: str, given: list[str], key: str) -> Item:
    doc = {"language": language, "kind": kind, "words": words, "given": given, "key": key}
    return Item(item_id="i", doc=doc, target=LANGUAGES[language].show(key))


def total(language: str, a: str = "3", b: str = "4", key: str = "7") -> Item:
    return item(language, "sum", "numbers", [a, b], key)


def day(language: str) -> Item:
    return item(language, "tomorrow", "days", ["monday"], "tuesday")


def test_every_language_has_every_question() -> None:
    items = TASK.items()
    assert len(items) == 12 * 8
    assert Counter(item.stratum for item in items) == dict.fromkeys(CODES, 12)
    clusters = Counter(item.cluster for item in items)
    assert len(clusters) == 12
    assert set(clusters.values()) == {8}
    assert len({item.doc["question"] for item in items}) == len(items)


def test_every_language_has_every_word_and_template() -> None:
    kinds = {"sum", "tomorrow", "opposite", "colour", "two_steps", "days_ago", "months_on", "mix"}
    english = LANGUAGES["en"]
    for language in LANGUAGES.values():
        assert set(language.templates) == kinds
        assert set(language.things) == set(english.things)
        for kind, words in english.words.items():
            assert set(language.words[kind]) == set(words)
        for name, template in language.templates.items():
            assert fields(template) == fields(english.templates[name]), (language.code, name)


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=CODES)
def test_every_word_is_found_as_itself_and_as_nothing_else(language: Language) -> None:
    for kind, words in language.words.items():
        for key, forms in words.items():
            for form in forms.split("|"):
                word = form.removesuffix("*")
                if form == word:
                    assert language.find(kind, f"({word}).") == {key}, (language.code, word)


def test_all_kinds_of_questions_are_asked_in_words_of_the_language() -> None:
    kinds = set()
    for asked in Multilingual(items_per_level=24, seed=2).items():
        language = LANGUAGES[asked.doc["language"]]
        kinds.add(asked.doc["kind"])
        question = asked.doc["question"]
        assert "{" not in question
        named = language.find(asked.doc["words"], question, digits=True)
        if asked.doc["words"] in ("days", "colours", "adjectives", "months", "numbers"):
            extra = {"k"} if asked.doc["kind"] in ("days_ago", "months_on") else set()
            assert named - extra == set(asked.doc["given"]), question
        assert asked.doc["key"] not in asked.doc["given"]
    assert len(kinds) == sum(len(makers) for makers in QUESTIONS.values())


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (total("en"), "Three plus four is seven."),
        (total("en"), "Seven."),
        (total("en"), "The answer is 7."),
        (total("de"), "Drei plus vier ist sieben."),
        (total("de"), "sieben"),
        (total("fr"), "Trois plus quatre font sept."),
        (total("fr", "9", "8", "17"), "Neuf plus huit font dix-sept."),
        (total("es"), "Tres más cuatro es siete."),
        (total("it"), "Tre più quattro fa sette."),
        (total("pt"), "Três mais quatro é sete."),
        (total("zh"), "三加四等于七。"),
        (total("zh", "9", "8", "17"), "九加八等于十七。"),
        (total("ru"), "Три плюс четыре будет семь."),
        (day("en"), "Tomorrow is Tuesday."),
        (day("en"), "If today is Monday, tomorrow is **Tuesday**."),
        (day("de"), "Morgen ist Dienstag."),
        (day("de"), "<think>Monday, so Wednesday?</think>Morgen ist Dienstag."),
        (day("fr"), "Demain, nous serons mardi."),
        (day("es"), "Mañana es martes."),
        (day("it"), "Domani è martedì."),
        (day("pt"), "Amanhã é terça-feira."),
        (day("zh"), "明天是星期二。"),
        (day("zh"), "明天是周二。"),
        (day("ru"), "Завтра будет вторник."),
        (item("de", "opposite", "adjectives", ["hot"], "cold"), "Das Gegenteil von heiß ist kalt."),
        (item("fr", "opposite", "adjectives", ["heavy"], "light"), "Le contraire est légère."),
        (item("es", "colour", "colours", [], "white"), "La nieve es blanca."),
        (item("it", "colour", "colours", [], "red"), "Il sangue è rosso."),
        (item("pt", "mix", "colours", ["red", "white"], "pink"), "A mistura dá cor-de-rosa."),
        (item("ru", "colour", "colours", [], "black"), "Уголь чёрного цвета."),
        (item("ru", "colour", "colours", [], "black"), "Уголь черный."),
        (item("pt", "opposite", "adjectives", ["full"], "empty"), "Vazio."),
        (item("zh", "mix", "colours", ["red", "white"], "pink"), "红色和白色混合是粉红色。"),
        (item("en", "months_on", "months", ["march"], "june"), "It will be June in three months."),
    ],
)
def test_right_answers_in_the_language_are_worth_1(asked: Item, text: str) -> None:
    judgement = TASK.judge(asked, text)
    assert (judgement.value, judgement.parsed) == (1, True), judgement


@pytest.mark.parametrize(
    ("code", "kind", "text", "keys"),
    [
        ("en", "numbers", "I often see seven.", {"7"}),
        ("en", "numbers", "thirty-two", set()),
        ("fr", "numbers", "dix-sept", {"17"}),
        ("fr", "numbers", "quatre-vingt-dix", {"90"}),
        ("zh", "numbers", "二十", {"20"}),
        ("zh", "numbers", "九十二", set()),
        ("zh", "months", "十二月", {"december"}),
        ("zh", "colours", "粉红色", {"pink"}),
        ("de", "adjectives", "langsam", {"slow"}),
        ("pt", "colours", "cor-de-rosa", {"pink"}),
        ("it", "colours", "i nervi", set()),
    ],
)
def test_words_are_found_whole(code: str, kind: str, text: str, keys: set[str]) -> None:
    assert LANGUAGES[code].find(kind, text) == keys


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (total("en"), "Three plus four is eight."),
        (total("en"), "It is seven or eight."),
        (total("fr", "6", "4", "10"), "Six plus quatre font dix-sept."),
        (total("es", "4", "5", "9"), "Cuatro más cinco es treinta y nueve."),
        (total("zh", "3", "7", "10"), "三加七等于二十。"),
        (day("en"), "Monday."),
        (day("en"), "Monday, Tuesday, Wednesday, Thursday"),
        (day("de"), "Morgen ist Mittwoch."),
        (day("de"), "<think>Dienstag</think>Morgen ist Mittwoch."),
        (day("zh"), "明天是星期三。"),
    ],
)
def test_wrong_answers_are_worth_0(asked: Item, text: str) -> None:
    judgement = TASK.judge(asked, text)
    assert (judgement.value, judgement.parsed) == (0, True), judgement


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (total("de"), "Three plus four is seven."),
        (total("fr"), "The answer is clearly 7, of course."),
        (total("en"), "Drei plus vier ist sieben."),
        (total("es"), "Três mais quatro é sete."),
        (total("zh"), "Three plus four is seven."),
        (total("ru"), "Seven"),
        (day("es"), "Tomorrow is Tuesday."),
        (day("de"), "Tuesday"),
        (day("en"), "明天是星期二。"),
        (day("pt"), "Mañana es martes."),
        (item("it", "colour", "colours", [], "green"), "The grass is always verde, you know."),
    ],
)
def test_a_right_answer_in_another_language_is_worth_0(asked: Item, text: str) -> None:
    judgement = TASK.judge(asked, text)
    assert (judgement.value, judgement.parsed) == (0, True), judgement


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (total("en"), ""),
        (total("en"), "7"),
        (total("de"), "= 7."),
        (total("zh"), "7。"),
        (day("fr"), "Je ne sais pas."),
        (day("fr"), "<think>mardi"),
        (day("ru"), "???"),
    ],
)
def test_no_word_of_the_kind_in_any_language_is_unparsed(asked: Item, text: str) -> None:
    judgement = TASK.judge(asked, text)
    assert (judgement.value, judgement.parsed, judgement.answer) == (0, False, None)


def test_a_short_word_that_two_languages_share_counts_in_both() -> None:
    for code in ("es", "it", "pt"):
        asked = item(code, "colour", "colours", [], "green")
        assert TASK.judge(asked, "Verde.").value == 1


def test_every_target_alone_is_right() -> None:
    for asked in Multilingual(items_per_level=24).items():
        judgement = TASK.judge(asked, f"{asked.target}.")
        assert judgement.value == 1, (asked.doc, asked.target, judgement)


@pytest.mark.parametrize("code", CODES)
def test_the_language_of_the_languages_own_sentences_is_never_taken_for_another(code: str) -> None:
    language = LANGUAGES[code]
    texts = [language.instruction, *(text for shot in language.shots for text in shot)]
    texts += [asked.doc["question"] for asked in TASK.items() if asked.stratum == code]
    assert {find_language(text) for text in texts} <= {code, None}
    assert find_language(language.instruction) == code


def test_prompts_are_in_the_language_and_examples_are_no_items() -> None:
    questions = {asked.doc["question"] for asked in Multilingual(items_per_level=24).items()}
    for asked in TASK.items():
        language = LANGUAGES[asked.doc["language"]]
        (message,) = TASK.prompt(asked, chat=True)
        assert isinstance(message, Message)
        assert message.content == f"{asked.doc['question']}\n{language.instruction}"
        plain = TASK.prompt(asked, chat=False)
        assert isinstance(plain, str)
        assert plain.endswith(f"Q 3: {asked.doc['question']}\nA:")
        assert not any(stop in plain for stop in TASK.spec.stops)
        assert questions.isdisjoint(question for question, _ in language.shots)
        assert plain_prompt(language).stop in TASK.spec.stops


def test_fewer_languages_keep_the_questions() -> None:
    two = {item.item_id for item in Multilingual(languages=("fr", "zh")).items()}
    assert two == {item.item_id for item in TASK.items() if item.stratum in ("fr", "zh")}


@pytest.mark.parametrize("languages", [(), ("xx",), ("de", "de"), "de"])
def test_unknown_languages_are_refused(languages: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="languages"):
        Multilingual(languages=languages)
