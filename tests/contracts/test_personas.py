"""Every persona of the fake platform keeps the contracts of the real one."""

import pytest

from segue.testing.contracts import (
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
)
from segue.testing.fake_harness import FakeHarness
from segue.testing.personas import Discord, Feishu, Matrix, Signal, Slack, Telegram, WhatsApp


class TestWhatsApp(WebhookContract, TypingContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(WhatsApp())


class TestSignal(TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Signal())


class TestSlack(ThreadContract, EditContract, ChangeContract, DeletionContract, WhisperContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Slack())


class TestDiscord(ThreadContract, EditContract, TypingContract, ChangeContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Discord())


class TestTelegram(ThreadContract, EditContract, TypingContract, ChangeContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Telegram())


class TestMatrix(ThreadContract, EditContract, TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Matrix())


class TestFeishu(ThreadContract, EditContract, WebhookContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(Feishu())
